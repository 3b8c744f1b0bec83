"""The tables of all text pairs: pooled mAP, AUC and r-precision."""

"""Reading judgements and runs in trec_eval's form, exactly and fast."""

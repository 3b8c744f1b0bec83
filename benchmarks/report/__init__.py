"""What turns results into the tables of the README and the docs."""

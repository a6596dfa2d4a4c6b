"""Where tables are made when the rows lie elsewhere: the same integers from SQL."""

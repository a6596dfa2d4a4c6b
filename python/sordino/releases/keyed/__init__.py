"""Released sketches of keys, and the counts that are read off them."""

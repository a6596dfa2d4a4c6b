"""What is counted of graphs and texts while they come."""

"""Points: catalogue of features, and what they leave out."""

"""Tables: catalogue of strategies, searches, recoveries."""

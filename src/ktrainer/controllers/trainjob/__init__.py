"""The TrainJob controller: what a TrainJob asks for is built, what becomes of it is told, and its end is kept."""

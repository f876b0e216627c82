"""The client of a farm, and the farm that is started here: needs grpcio, protobuf, the program."""

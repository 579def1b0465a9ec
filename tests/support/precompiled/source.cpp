// A target must have a source for its precompiled header to be made.

//! Crashes of the file sink at every step of its writing: what was confirmed is there once, and the rest comes again.

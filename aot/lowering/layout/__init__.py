"""Physical layout: strides, halos, pitches."""

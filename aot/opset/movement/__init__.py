"""Data are moved and not computed: shapes, slices, gathers, scatters."""

"""Options of a compilation: keywords, the table, what libraries tell of them."""

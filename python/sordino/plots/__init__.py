"""Pictures: an optional extra, reached from `plot` methods through `sordino._support.extras`."""

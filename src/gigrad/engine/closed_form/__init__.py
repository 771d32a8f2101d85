"""Terms whose credit needs no quadrature: a link over trees, a function of one straight score, linear leaves."""

"""The PB+tree on pages: their layout, the kernels over them, and the file that keeps them."""

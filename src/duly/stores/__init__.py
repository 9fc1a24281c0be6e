"""What a store promises and how one is opened by URL. The only package that knows SQL."""

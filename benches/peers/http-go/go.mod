module peers

go 1.24

require github.com/valyala/fasthttp v1.68.0

module pawl/internal/clients/testdata/go

go 1.26

require (
	github.com/gomodule/redigo v1.9.3
	github.com/mediocregopher/radix/v4 v4.1.4
	github.com/redis/rueidis v1.0.79
)

require (
	github.com/tilinna/clock v1.0.2 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

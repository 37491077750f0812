package main

import (
	"pawl/config"
	"pawl/server/admin"
	"pawl/server/resp"
)

// storeFiles is how many files the daemon has open beside its connections.
const storeFiles = 64

// redisClients and httpClients are the limits of connections: those of c, unless
// the process may open fewer files.
func redisClients(c *config.Config) int {
	redis, _ := shareDescriptors(c, resp.DescriptorLimit())
	return redis
}

func httpClients(c *config.Config) int {
	_, http := shareDescriptors(c, resp.DescriptorLimit())
	return http
}

// shareDescriptors divides files among the ports, so that clients of one never keep
// out those of another, least of all operators, who have theirs apart. The HTTP API
// has what Redis clients leave, but a quarter at least.
func shareDescriptors(c *config.Config, files int) (redis, http int) {
	redis, http = c.MaxClients, c.MaxHTTPClients
	free := files - min(storeFiles+admin.MaxClients, files/4)
	if c.HTTPAddr == "" {
		return min(redis, free), http
	}
	http = min(http, max(free-redis, free/4))
	return min(redis, free-http), http
}

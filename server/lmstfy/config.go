package lmstfy

import (
	"fmt"
	"sort"

	"github.com/BurntSushi/toml"
)

// Config is lmstfy's configuration file. Names are read without regard to case
// and unknown ones are ignored, so that an existing file loads unchanged. Redis
// addresses are read for their presence only.
type Config struct {
	Host            string
	Port            int
	AdminHost       string // 127.0.0.1 by default
	AdminPort       int
	LogLevel        string // info by default
	LogDir          string // empty: standard output
	LogFormat       string // text or json
	EnableAccessLog bool

	TTLSecond     *uint32
	DelaySecond   *uint32
	TriesNum      *uint16
	TTRSecond     *uint32
	TimeoutSecond *uint32

	Accounts map[string]string // user = password of the admin API
	Pool     map[string]PoolConfig

	// Tokens are ours: tokens that hold beside those in the log, by namespace,
	// then by the text that clients send, with a description.
	Tokens map[string]map[string]string
}

// PoolConfig is one pool. A pool with a Version is another kind of store and is
// skipped, as lmstfy does.
type PoolConfig struct {
	Addr      string
	MigrateTo string
	Version   string
}

// LoadConfig reads a file in lmstfy's format. What lmstfy would refuse to start
// with is an error here too, save for Redis' own settings.
func LoadConfig(path string) (*Config, error) {
	c := &Config{AdminHost: "127.0.0.1", LogLevel: "info", LogFormat: "text"}
	if _, err := toml.DecodeFile(path, c); err != nil {
		return nil, fmt.Errorf("lmstfy configuration %s: %w", path, err)
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("lmstfy configuration %s: %w", path, err)
	}
	return c, nil
}

func (c *Config) check() error {
	switch {
	case c.Host == "":
		return fmt.Errorf("key Host is missing")
	case c.Port < 1 || c.Port > 65535:
		return fmt.Errorf("key Port is %d, want 1 to 65535", c.Port)
	case c.AdminPort < 1 || c.AdminPort > 65535:
		return fmt.Errorf("key AdminPort is %d, want 1 to 65535", c.AdminPort)
	case c.TriesNum != nil && *c.TriesNum == 0:
		return fmt.Errorf("TriesNum is 0, want 1 to 65535")
	}
	if _, ok := c.Pool["default"]; !ok {
		return fmt.Errorf("[Pool.default] is missing")
	}
	return nil
}

// Apply sets what the file says in o. o.FixedTokens, o.Pools and o.Accounts are
// replaced.
func (c *Config) Apply(o *Options) {
	o.Pools, o.MigrateTo, o.FixedTokens = nil, nil, nil
	for name, pool := range c.Pool {
		if pool.Version != "" {
			continue
		}
		o.Pools = append(o.Pools, name)
		if pool.MigrateTo != "" {
			if o.MigrateTo == nil {
				o.MigrateTo = make(map[string]string)
			}
			o.MigrateTo[name] = pool.MigrateTo
		}
	}
	sort.Strings(o.Pools)
	o.Accounts = c.Accounts
	for namespace, tokens := range c.Tokens {
		for text, description := range tokens {
			pool, token := SplitToken(text)
			o.FixedTokens = append(o.FixedTokens, FixedToken{pool, namespace, token, description})
		}
	}
	o.Defaults = Defaults{
		TTLSeconds:     c.TTLSecond,
		DelaySeconds:   c.DelaySecond,
		Tries:          c.TriesNum,
		TTRSeconds:     c.TTRSecond,
		TimeoutSeconds: c.TimeoutSecond,
	}
	o.AccessLogOn = c.EnableAccessLog
	o.AccessLogJSON = c.LogFormat == "json"
}

package migrate_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"pawl/migrate"
	"pawl/state"
)

// TestHostileSources: whatever lies in a Redis, an import takes what is of the
// layout, counts the rest, and comes to its end; and a second run adds nothing.
func TestHostileSources(t *testing.T) {
	url := startRealRedis(t)
	s := lmstfyShop{t, open(t, url)}
	ctx := t.Context()
	s.ready("ns", "q", id(1), "good", 2, 0)
	s.ready("ns", "q", id(2), "never tried again", 0, 0)
	s.ready("ns", "q", id(3), strings.Repeat("x", 2<<20), 1, 0) // over the limit of a payload
	s.ready("ns", "q", strings.Repeat("i", 300), "long ID", 1, 0)
	s.ready("ns", "q", "\x00\xff'\"\r\n*", "odd ID", 1, 0)
	s.ready("n\x00s", "q\r\n\xff", id(4), "odd names", 1, 0)
	s.ready("ns", strings.Repeat("q", 300), id(5), "long name", 1, 0)
	s.ready("ns", "", id(6), "no name", 1, 0)
	s.ready("ns", "a/b", id(7), "a slash", 1, 0)
	s.ready("ns", "q", "1"+id(8), "\x0a\xff\xff\xff\xff\x0f cut", 1, 0)                       // no protocol buffer
	s.ready("ns", "q", "1"+id(9), "\x0a\x01x"+strings.Repeat("\x12\x04\x0a\x02kk", 40), 1, 0) // 40 attributes
	for _, junk := range []string{"", "\x01", "\x01\x00\xff\xff", "\x01\x00\x00\x00", strings.Repeat("j", 1<<16)} {
		s.must(s.c.RPush(ctx, "q/ns/q", junk).Err())
	}
	s.must(s.c.LPush(ctx, "q/ns/q", listed(1, id(10))).Err())
	s.must(s.c.HSet(ctx, "j/ns/q/"+id(10), "a", "hash, not a body").Err())
	for _, score := range []float64{math.Inf(1), math.Inf(-1), 1e300, -5, 1 << 40} {
		s.must(s.c.ZAdd(ctx, "timer_set", redis.Z{Score: score, Member: timed("ns", "t", 1, id(20)+string(rune('a'+int(math.Mod(math.Abs(score), 7)))))}).Err())
	}
	s.timer("ns", "t", id(11), "in a century", 1, time.Now().AddDate(98, 0, 0), 0)
	s.must(s.c.ZAdd(ctx, "timer_set", redis.Z{Score: 1, Member: "junk"}).Err())
	s.must(s.c.Set(ctx, "q/ns/string", "no list", 0).Err())
	s.must(s.c.Set(ctx, "d/ns/string", "no list", 0).Err())
	s.must(s.c.LPush(ctx, "q/too/many/parts", "x").Err())
	s.must(s.c.Set(ctx, "__throttler_keys__", "no hash", 0).Err())
	s.must(s.c.HSet(ctx, "tk/default/ns", "short", "x", "with space and more of them", "x", strings.Repeat("t", 5000), "x").Err())
	s.must(s.c.HSet(ctx, "tk/default", "01F4CKPFY8XYVH6WVEQB3747CW", "x").Err())

	g := newTarget(t)
	o := migrate.Options{Layout: "lmstfy", From: url}
	first := g.run(o)
	g.want("default/ns/q", state.Ready, "good tries=2", "never tried again tries=1", "odd ID tries=1", "\x0a\xff\xff\xff\xff\x0f cut tries=1")
	if first.Added != 6 || first.Unreadable < 10 || first.Refused < 5 {
		t.Errorf("first run: got %+v", first)
	}
	second := g.run(o)
	if second.Added != 0 || second.Duplicates != first.Added || second.Refused != first.Refused || second.Unreadable != first.Unreadable {
		t.Errorf("second run: got %+v after %+v", second, first)
	}

	for key, value := range map[string]string{
		"moxy:{m}:ready": "", "moxy:{}:ready": `{"id":"a","payload":"eA=="}`, "moxy:{m": "x", "moxy:{\x00\xff}:ready": `{"id":"b","payload":"eA=="}`,
	} {
		s.must(s.c.LPush(ctx, key, value).Err())
	}
	s.must(s.c.LPush(ctx, "moxy:{m}:dead", `{"task":{}}`, `{"task":{"id":"c","payload":"!"}}`, `[]`, strings.Repeat("[", 100_000), `{"task":{"id":"d","payload":"eA=="},"reason":"`+strings.Repeat("r", 3000)+`"}`).Err())
	s.must(s.c.HSet(ctx, "moxy:{h}:ready", "a", "a hash, no list").Err())
	s.must(s.c.Set(ctx, "moxy:{h}:processing", "neither", 0).Err())
	first = g.run(migrate.Options{Layout: "moxy", From: url})
	if first.Added < 2 || first.Unreadable < 6 {
		t.Errorf("moxy: got %+v", first)
	}
	if second := g.run(migrate.Options{Layout: "moxy", From: url}); second.Added != 0 || second.Duplicates != first.Added {
		t.Errorf("moxy, second run: got %+v after %+v", second, first)
	}
}

package bench_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"pawl/bench"
)

// A daemon's metrics are floating-point numbers, large counts with an exponent.
func TestScrape(t *testing.T) {
	page := `# TYPE pawl_engine_turn_seconds histogram
pawl_engine_turn_seconds_bucket{le="1e-06"} 999999
pawl_engine_turn_seconds_bucket{le="0.002048"} 1.369875e+06
pawl_engine_turn_seconds_bucket{le="+Inf"} 1.369877e+06
pawl_engine_turn_seconds_sum 12.5
`
	daemon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, page) }))
	defer daemon.Close()
	all, err := bench.Scrape(t.Context(), strings.TrimPrefix(daemon.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	turns := all[bench.TurnTimes]
	if n := turns.Count(); n != 1_369_877 {
		t.Errorf("got %d stays, want 1,369,877", n)
	}
	if within := turns.Within(0.99); within != 0.002048 {
		t.Errorf("got 99%% of them within %v s, want 0.002048", within)
	}
}

package bench

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"
)

// Chart draws tables as one SVG: a panel for each workload, in it a place for
// each load and a mark for each server, at the median of all its runs, with a
// line from the slowest to the fastest. The scale is logarithmic, so equal
// ratios are equal distances. Tables of several pairs may be given together; a
// server that is in more than one has all its runs in one mark.
func Chart(w io.Writer, tables ...Table) error {
	c := chart{rates: map[chartKey][]float64{}, title: "Jobs a second, synced before every answer"}
	for _, t := range tables {
		if t.Sync != "always" {
			c.title = "Jobs a second, without syncing"
		}
		if err := t.validate(); err != nil {
			return err
		}
		for _, cell := range t.Cells {
			for _, r := range slices.Concat(cell.Ours, cell.Theirs) {
				c.add(cell, r)
			}
		}
	}
	slices.SortStableFunc(c.loads, func(a, b chartLoad) int {
		return cmp.Or(cmp.Compare(a.pipeline, b.pipeline), cmp.Compare(a.conns, b.conns))
	})
	slices.SortStableFunc(c.servers, func(a, b string) int {
		return cmp.Compare(slices.Index(Kinds, a), slices.Index(Kinds, b))
	})
	c.draw()
	_, err := io.WriteString(w, c.out.String())
	return err
}

// ReadTable reads a table that was written as JSON.
func ReadTable(r io.Reader) (t Table, err error) {
	if err := json.NewDecoder(r).Decode(&t); err != nil {
		return Table{}, fmt.Errorf("%w: %w", ErrTable, err)
	}
	return t, t.validate()
}

type chart struct {
	workloads []Workload
	loads     []chartLoad
	servers   []string
	rates     map[chartKey][]float64 // per second
	title     string
	out       strings.Builder
}

type chartLoad struct{ conns, pipeline int }

type chartKey struct {
	workload Workload
	load     chartLoad
	server   string
}

func (c *chart) add(cell Cell, r Result) {
	load := chartLoad{cell.Conns, cell.Pipeline}
	if !slices.Contains(c.workloads, cell.Workload) {
		c.workloads = append(c.workloads, cell.Workload)
	}
	if !slices.Contains(c.loads, load) {
		c.loads = append(c.loads, load)
	}
	if !slices.Contains(c.servers, r.Target) {
		c.servers = append(c.servers, r.Target)
	}
	key := chartKey{cell.Workload, load, r.Target}
	c.rates[key] = append(c.rates[key], r.PerSecond)
}

// Sizes in pixels.
const (
	chartWidth       = 860
	chartLeft        = 74
	chartRight       = 16
	chartTop         = 58 // title and legend
	chartPanel       = 230
	chartPanelTop    = 26 // its title
	chartPanelBottom = 34 // names of the loads
)

// A server's look: told apart without colours too.
var chartMarks = []struct{ colour, path string }{
	{"#c2410c", "M0,-6 L6,0 L0,6 L-6,0 Z"},                             // diamond
	{"#1d4ed8", "M-5,-5 H5 V5 H-5 Z"},                                  // square
	{"#15803d", "M0,-6 L6,5 H-6 Z"},                                    // triangle
	{"#7e22ce", "M0,6 L6,-5 H-6 Z"},                                    // triangle, upside down
	{"#0f766e", "M-6,-2 H-2 V-6 H2 V-2 H6 V2 H2 V6 H-2 V2 H-6 Z"},      // cross
	{"#525252", "M0,-5 A5,5 0 1 1 0,5 A5,5 0 1 1 0,-5 Z"},              // disc
	{"#be185d", "M-6,-4 L-4,-6 L6,4 L4,6 Z M-6,4 L4,-6 L6,-4 L-4,6 Z"}, // saltire
	{"#854d0e", "M-6,-1.5 H6 V1.5 H-6 Z M-1.5,-6 H1.5 V6 H-1.5 Z"},     // plus
}

func (c *chart) draw() {
	height := chartTop + len(c.workloads)*(chartPanel+chartPanelTop+chartPanelBottom)
	c.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" role="img" font-family="system-ui,sans-serif" font-size="12" fill="#262626">`, chartWidth, height)
	c.printf(`<title>%s, by server and load</title>`, c.title)
	c.printf(`<rect width="%d" height="%d" fill="#ffffff"/>`, chartWidth, height)
	c.printf(`<text x="%d" y="20" font-size="15" font-weight="600">%s (log scale; medians, lines from slowest to fastest run)</text>`, 12, c.title)
	x := chartLeft
	for i, server := range c.servers {
		c.mark(i, float64(x), 40)
		c.printf(`<text x="%d" y="44">%s</text>`, x+11, html.EscapeString(server))
		x += 36 + 8*len(server)
	}
	top := chartTop
	for _, workload := range c.workloads {
		c.panel(workload, top)
		top += chartPanel + chartPanelTop + chartPanelBottom
	}
	c.printf(`</svg>`)
}

// panel draws one workload below top.
func (c *chart) panel(workload Workload, top int) {
	y0 := float64(top + chartPanelTop)
	least, most := c.decades(workload)
	y := func(rate float64) float64 {
		return y0 + chartPanel*(float64(most)-math.Log10(rate))/float64(most-least)
	}
	c.printf(`<text x="%d" y="%.0f" font-size="13" font-weight="600">%s</text>`, chartLeft, y0-8, html.EscapeString(string(workload)))
	for decade := least; decade <= most; decade++ {
		for _, digit := range []float64{1, 2, 5} {
			rate := digit * math.Pow10(decade)
			if decade == most && digit > 1 {
				break
			}
			colour := "#e5e5e5"
			if digit == 1 {
				colour = "#a3a3a3"
			}
			c.printf(`<path d="M%d,%.1f H%d" stroke="%s"/>`, chartLeft, y(rate), chartWidth-chartRight, colour)
			c.printf(`<text x="%d" y="%.1f" text-anchor="end" fill="#525252">%s</text>`, chartLeft-8, y(rate)+4, chartNumber(rate))
		}
	}
	step := float64(chartWidth-chartLeft-chartRight) / float64(len(c.loads))
	for i, load := range c.loads {
		middle := chartLeft + step*(float64(i)+0.5)
		name := fmt.Sprintf("%d", load.conns)
		if load.pipeline > 1 {
			name += fmt.Sprintf(" × %d", load.pipeline)
		}
		c.printf(`<text x="%.1f" y="%.0f" text-anchor="middle">%s</text>`, middle, y0+chartPanel+18, name)
		gap := min(step/float64(len(c.servers)+1), 26)
		for k, server := range c.servers {
			rates := c.rates[chartKey{workload, load, server}]
			if len(rates) == 0 {
				continue
			}
			s := NewSpread(rates)
			at := middle + gap*(float64(k)-float64(len(c.servers)-1)/2)
			c.printf(`<g><title>%s, %s: %.0f/s (%.0f to %.0f)</title><path d="M%.1f,%.1f V%.1f" stroke="%s" stroke-width="2"/>`,
				html.EscapeString(server), name, s.Median, s.Min, s.Max, at, y(s.Min), y(s.Max), chartMarks[k%len(chartMarks)].colour)
			c.mark(k, at, y(s.Median))
			c.printf(`</g>`)
		}
	}
	c.printf(`<text x="%d" y="%.0f" fill="#525252" text-anchor="end">conns</text>`, chartLeft-8, y0+chartPanel+18)
}

// decades are the powers of ten around all rates of a workload.
func (c *chart) decades(workload Workload) (least, most int) {
	low, high := math.Inf(1), 0.0
	for key, rates := range c.rates {
		if key.workload == workload {
			low, high = min(low, max(slices.Min(rates), 1)), max(high, slices.Max(rates))
		}
	}
	least, most = int(math.Floor(math.Log10(low))), int(math.Ceil(math.Log10(max(high, 1))))
	return least, max(most, least+1)
}

func (c *chart) mark(server int, x, y float64) {
	m := chartMarks[server%len(chartMarks)]
	c.printf(`<path transform="translate(%.1f,%.1f)" d="%s" fill="%s"/>`, x, y, m.path, m.colour)
}

// chartNumber is a round number for the axis.
func chartNumber(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.0f M", v/1e6)
	case v >= 1e3:
		return fmt.Sprintf("%.0f k", v/1e3)
	}
	return fmt.Sprintf("%.0f", v)
}

func (c *chart) printf(format string, args ...any) {
	fmt.Fprintf(&c.out, format+"\n", args...)
}

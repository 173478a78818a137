//go:build e2e

package home

import (
	"context"
	"encoding/csv"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentsite/cmd/internal/e2e/harness"
	"agentsite/node/identity"
)

// samples returns what it has of a point: Unix ms and value, of all series with their labels.
func (p *prometheus) samples(t *testing.T, point string, since time.Duration) map[string]map[int64]float64 {
	t.Helper()
	var data struct {
		Result []struct {
			Metric map[string]string
			Values [][2]any
		}
	}
	expr := fmt.Sprintf(`agentsite_reading{point=%q}[%ds]`, point, int(since.Seconds()))
	p.get(t, "query", url.Values{"query": {expr}}, &data)
	all := make(map[string]map[int64]float64)
	for _, r := range data.Result {
		of := make(map[int64]float64)
		for _, v := range r.Values {
			n, err := strconv.ParseFloat(v[1].(string), 64)
			if err != nil {
				t.Fatal(err)
			}
			of[int64(v[0].(float64)*1000+0.5)] = n
		}
		all[fmt.Sprint(r.Metric)] = of
	}
	return all
}

// exporting is the configuration of a site that sends to a store at a URL.
func exporting(at, may string) string {
	return fmt.Sprintf(`site: { name: shed }
owner: %s
http: { https: none }
devices:
  air: { driver: sim, model: climate, every: 1s }
  box: { driver: sim, model: relay, min_off: 0 }
export: { remote_write: { url: "%s/api/v1/write", every: 10s, labels: { region: north } }, may: '%s' }
`, identity.New().ID(), at, may)
}

// start runs a site, and sets its clock, which is not known on every machine that tests run on.
func start(t *testing.T, folder, config string) *harness.Site {
	t.Helper()
	site := harness.StartIn(t, folder, config, nil, harness.Need(t, "the program", harness.Program))
	if out, err := site.CLI(t, "clock", "--set"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return site
}

// history returns what the site has of a measurement: the mean of each second, by its end.
func history(t *testing.T, site *harness.Site, point string, from, to time.Time) map[int64]float64 {
	t.Helper()
	text, err := site.CLI(t, "history", point, "--from", from.Format(time.RFC3339), "--to", to.Format(time.RFC3339),
		"--step", "1s", "--csv")
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[int64]float64)
	for _, row := range rows[1:] {
		at, err := time.Parse(time.RFC3339, row[0])
		if err != nil {
			t.Fatal(err)
		}
		if all[at.UnixMilli()+1000], err = strconv.ParseFloat(row[3], 64); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// behind makes the site have been cut off from its store for a time, which it is not running.
func behind(t *testing.T, folder string, by time.Duration) {
	t.Helper()
	file := filepath.Join(folder, "export.json")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text = regexp.MustCompile(`\d{10,}`).ReplaceAllFunc(text, func(b []byte) []byte {
		n, _ := strconv.ParseInt(string(b), 10, 64)
		return strconv.AppendInt(nil, n-int64(by.Seconds()), 10)
	})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// past gives a point readings of the hours before this one, each 20 s.
func past(t *testing.T, site *harness.Site, point string, hours int) {
	t.Helper()
	var b strings.Builder
	b.WriteString("time,point,value\n")
	top := time.Now().Truncate(time.Hour)
	for at := top.Add(-time.Duration(hours) * time.Hour); at.Before(top); at = at.Add(20 * time.Second) {
		fmt.Fprintf(&b, "%s,%s,%g\n", at.UTC().Format(time.RFC3339), point, 15+float64(at.Unix()/20%100)/10)
	}
	file := filepath.Join(site.Folder, "past.csv")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := site.CLI(t, "history", "import", file); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// says waits until agentsite agents says something of the export.
func says(t *testing.T, site *harness.Site, most time.Duration, pattern string) []string {
	t.Helper()
	form, last := regexp.MustCompile(`(?m)^export .*`+pattern), ""
	var found []string
	for end := time.Now().Add(most); found == nil; {
		if time.Now().After(end) {
			t.Fatalf("it does not say %s:\n%s\n%s", pattern, last, site.Log)
		}
		out, err := site.CLI(t, "agents")
		if last = out; err == nil {
			found = form.FindStringSubmatch(out)
		}
		if found == nil {
			select {
			case <-time.After(200 * time.Millisecond):
			case <-t.Context().Done():
			}
		}
	}
	return found
}

// caughtUp waits until all that is before a time was sent.
func caughtUp(t *testing.T, site *harness.Site, to time.Time) {
	t.Helper()
	for {
		m := says(t, site, 3*time.Minute, `samples are sent; up to (\S+?Z)`)
		if at, err := time.Parse(time.RFC3339, m[1]); err == nil && !at.Before(to) {
			return
		}
	}
}

// TestRemoteWrite: a Prometheus that was down for hours has each reading of them afterwards, and nothing else.
func TestRemoteWrite(t *testing.T) {
	t.Parallel()
	prometheus := newPrometheus(t, harness.TempDir(t),
		"global: { scrape_interval: 1h }\nstorage: { tsdb: { out_of_order_time_window: 1d } }\n")
	prometheus.run(t)
	folder, config := harness.TempDir(t), exporting(prometheus.url, "read *")
	site := start(t, folder, config)
	harness.WaitFor(t, 2*time.Minute, "a first sample",
		func() bool { return len(prometheus.samples(t, "air/temperature", time.Hour)) > 0 })
	prometheus.stop()
	says(t, site, time.Minute, `waits +it is tried again`)
	past(t, site, "air/temperature", 3)
	site.Stop(t)
	behind(t, folder, 3*time.Hour)

	site = start(t, folder, config)
	says(t, site, time.Minute, `waits +it is tried again`)
	now := time.Now()
	site.Kill(t) // nothing was sent; what waits is in the history
	site = start(t, folder, config)
	says(t, site, time.Minute, `waits +it is tried again`)
	prometheus.run(t)
	caughtUp(t, site, now)

	from := now.Add(-2*time.Hour - 30*time.Minute).Truncate(time.Second)
	to := now.Truncate(time.Second).Add(-time.Second)
	for _, point := range []string{"air/temperature", "air/humidity"} {
		want, got := history(t, site, point, from, to), prometheus.samples(t, point, 3*time.Hour)
		if len(got) != 1 {
			t.Fatalf("%s has the series %v", point, len(got))
		}
		for labels, samples := range got {
			for _, label := range []string{"site:shed", "region:north", "point:" + point, "unit:"} {
				if !strings.Contains(labels, label) {
					t.Errorf("%s has no label %s", labels, label)
				}
			}
			for at, v := range want {
				if n, ok := samples[at]; !ok || n != v {
					t.Fatalf("%s at %v: %v %t, want %v; %d samples for %d", point, time.UnixMilli(at), n, ok, v, len(samples),
						len(want))
				}
			}
			for at := range samples {
				if _, ok := want[at]; !ok && at > from.UnixMilli()+1000 && at <= to.UnixMilli() {
					t.Errorf("%s: there was nothing at %v", point, time.UnixMilli(at))
				}
			}
			if point == "air/temperature" && len(want) < 90 {
				t.Errorf("%d readings are no gap", len(want))
			}
			t.Logf("%s: %d samples of %v are the same", point, len(want), to.Sub(from))
		}
	}
	if got := prometheus.samples(t, "box/relay", time.Hour); len(got) != 1 {
		t.Errorf("the output has %d series", len(got))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "promtool", "query", "series", "--match=agentsite_reading",
		prometheus.url).CombinedOutput()
	if err != nil || !strings.Contains(string(out), `site="shed"`) {
		t.Errorf("%v: %s", err, out)
	}
}

// TestRemoteWriteRefused: a Prometheus that has newer samples, and no time window for older ones, refuses these. They
// are counted and told, and what it can take arrives. Nothing arrives of points that the export may not read.
func TestRemoteWriteRefused(t *testing.T) {
	t.Parallel()
	prometheus := newPrometheus(t, harness.TempDir(t), "global: { scrape_interval: 1s }\nscrape_configs: [ { job_name: self, static_configs: [ { targets: [ HERE ] } ] } ]\n")
	prometheus.run(t)
	folder, config := harness.TempDir(t), exporting(prometheus.url, "read air/humidity")
	site := start(t, folder, config)
	harness.WaitFor(t, 2*time.Minute, "a first sample",
		func() bool { return len(prometheus.samples(t, "air/humidity", time.Hour)) > 0 })
	past(t, site, "air/humidity", 3)
	site.Stop(t)
	behind(t, folder, 3*time.Hour)
	site = start(t, folder, config)
	says(t, site, 3*time.Minute, `the store has refused \d+ samples`)
	now := time.Now()
	caughtUp(t, site, now)
	for labels, samples := range prometheus.samples(t, "air/humidity", time.Hour) {
		for at, v := range history(t, site, "air/humidity", now.Add(-20*time.Second), now.Add(-time.Second)) {
			if samples[at] != v {
				t.Errorf("%s at %v: %v, want %v", labels, time.UnixMilli(at), samples[at], v)
			}
		}
	}
	for _, point := range []string{"air/temperature", "box/relay"} {
		if got := prometheus.samples(t, point, 4*time.Hour); len(got) != 0 {
			t.Errorf("it has %s", point)
		}
	}
}

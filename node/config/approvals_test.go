package config

import (
	"strings"
	"testing"
	"time"
)

func TestApprovals(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 2 * time.Minute, "approvals: { wait: 2m }\n": 2 * time.Minute, "approvals: { wait: 24h }\n": 24 * time.Hour,
	} {
		site, err := Parse("x.yaml", []byte("site: { name: x }\n"+text), nil)
		if err != nil || site.Approvals.Wait != want {
			t.Errorf("%s: %+v %v", text, site, err)
		}
	}
	for text, want := range map[string]string{
		"approvals: { wait: 1m59s }\n": "x.yaml:2:20: approvals: wait must be from 2m to 24h",
		"approvals: { wait: 0 }\n":     "from 2m",
		"approvals: { wait: 25h }\n":   "from 2m", "approvals: { wait: 5 }\n": "unit", "approvals: 5m\n": "expects keys",
		"approvals: { for: 5m }\n": "for",
	} {
		if _, err := Parse("x.yaml", []byte("site: { name: x }\n"+text), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

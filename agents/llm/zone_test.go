package llm

import (
	"strings"
	"testing"
	"time"
)

// TestTimeOfSite: a model is told the time in the zone of the site's clock, whatever that of its
// process is.
func TestTimeOfSite(t *testing.T) {
	at := time.Date(2026, 3, 1, 23, 30, 0, 0, time.FixedZone("SITE", 5*3600+45*60))
	sure := true
	r := &run{agent: &Agent{world: &World{Now: func() (time.Time, bool) { return at, sure }}}}
	if got := r.system(); !strings.Contains(got, "Sunday 2026-03-01 23:30 SITE") {
		t.Errorf("%s", got)
	}
	if sure = false; strings.Contains(r.system(), "2026") {
		t.Error("it is told a time that is not known")
	}
}

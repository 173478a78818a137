package rule

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestZoneChanges: the zone is that of the file as it is now, and else the program's.
func TestZoneChanges(t *testing.T) {
	z := zone{file: filepath.Join(t.TempDir(), "localtime")}
	noon := time.Date(2026, 6, 21, 12, 0, 0, 0, time.UTC)
	if got := z.local(noon); got.Location() != time.Local {
		t.Error("without a file:", got)
	}
	for _, name := range []string{"Pacific/Auckland", "America/Havana"} {
		data, err := os.ReadFile("/usr/share/zoneinfo/" + name)
		if err != nil {
			t.Skip(err)
		}
		next := z.file + ".next"
		if err := os.WriteFile(next, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, z.file); err != nil {
			t.Fatal(err)
		}
		z.looked = time.Time{} // a second ago
		loc, _ := time.LoadLocation(name)
		if got, want := z.local(noon).Format(time.DateTime), noon.In(loc).Format(time.DateTime); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

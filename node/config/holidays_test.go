package config

import (
	"strings"
	"testing"
	"time"
)

// TestHolidays: the list belongs to the site, and a mistake is told at its line.
func TestHolidays(t *testing.T) {
	site, err := Parse("a.yaml", []byte("site:\n  name: a\n  holidays: [dec 25, 2027-03-26]\n"), nil)
	if err != nil || !site.Holidays.Has(time.Date(2027, 3, 26, 12, 0, 0, 0, time.UTC)) || site.Holidays.Has(time.Date(2028, 3, 26, 12, 0, 0, 0, time.UTC)) {
		t.Error(site, err)
	}
	for _, text := range []string{"[dec 32]", "dec 25", "[25.12.]", "[]\n  holidays: [dec 25]"} {
		_, err := Parse("a.yaml", []byte("site:\n  name: a\n  holidays: "+text+"\n"), nil)
		if err == nil || !strings.HasPrefix(err.Error(), "a.yaml:") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

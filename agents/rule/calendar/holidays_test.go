package calendar

import (
	"testing"
	"time"
)

func TestHolidays(t *testing.T) {
	h, err := ParseHolidays([]string{"Dec 25", "2027-03-26", " dec 31..jan 1 ", "2027-07-05..2027-08-14", "feb 29"})
	if err != nil {
		t.Fatal(err)
	}
	for day, want := range map[string]bool{
		"2026-12-25": true, "2030-12-25": true, "2026-12-24": false, "2027-03-26": true, "2028-03-26": false, "2026-12-31": true, "2027-01-01": true, "2027-01-02": false,
		"2027-07-04": false, "2027-07-05": true, "2027-08-14": true, "2027-08-15": false, "2028-07-05": false, "2028-02-29": true, "2027-02-28": false,
	} {
		at, err := time.ParseInLocation(time.DateOnly, day, zone(t, "America/New_York"))
		if err != nil {
			t.Fatal(err)
		}
		for _, hour := range []time.Duration{0, 23} {
			if got := h.Has(at.Add(hour * time.Hour)); got != want {
				t.Errorf("%s: %v", at.Add(hour*time.Hour), got)
			}
		}
	}
	for _, text := range []string{"", "25 dec", "dec 32", "feb 30", "dec", "2027-02-29", "2027-13-01", "27-01-01", "12-25", "dec 25..", "dec 25..2027-01-01", "2027-02-01..2027-01-01", "dec 25, dec 26", "christmas"} {
		if h, err := ParseHolidays([]string{text}); err == nil {
			t.Errorf("%q is taken as %v", text, h)
		}
	}
	if _, err := ParseHolidays(make([]string, 201)); err == nil || Holidays(nil).Has(time.Now()) {
		t.Error("a list has no end, or none has days")
	}
}

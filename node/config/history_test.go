package config

import (
	"strings"
	"testing"
	"time"
)

func TestHistory(t *testing.T) {
	for text, want := range map[string]History{
		"": DefaultHistory,
		"history: { raw: 30d, minutes: 1y, size: 256MB }\n":  {Raw: 30 * days, Minutes: years, Hours: 10 * years, Size: 256 << 20},
		"history: { raw: 36h, minutes: 2w1d, hours: 15d }\n": {Raw: age(36 * time.Hour), Minutes: 15 * days, Hours: 15 * days, Size: 64 << 20},
		"history: { raw: 17000h, minutes: 17000h }\n":        {Raw: age(17000 * time.Hour), Minutes: age(17000 * time.Hour), Hours: 10 * years, Size: 64 << 20},
		"history: { size: 65536MB }\n":                       {Raw: 7 * days, Minutes: 90 * days, Hours: 10 * years, Size: 64 << 30},
		"history: { size: 64GB }\n":                          {Raw: 7 * days, Minutes: 90 * days, Hours: 10 * years, Size: 64 << 30},
	} {
		site, err := Parse("x.yaml", []byte("site: { name: x }\n"+text), nil)
		if err != nil || site.History != want {
			t.Errorf("%s: %+v %v", text, site, err)
		}
	}
	for text, want := range map[string]string{
		"history: 7d\n":                                         "expects keys",
		"history: { raw: 7 }\n":                                 "takes hours",
		"history: { raw: 90m }\n":                               "takes hours",
		"history: { raw: 30m }\n":                               "takes hours",
		"history: { raw: 0h }\n":                                "from 1h to 10y",
		"history: { raw: 9999y }\n":                             "from 1h to 10y",
		"history: { hours: 10y1h }\n":                           "from 1h to 10y",
		"history: { raw: 99999999999999999999d }\n":             "takes hours",
		"history: { raw: " + strings.Repeat("10y", 59) + " }\n": "from 1h to 10y", // past the end of 64 bits
		"history: { raw: -7d }\n":                               "takes hours",
		"history: { raw: 91d }\n":                               "x.yaml:2:17: history: raw must not",
		"history: { minutes: 11d, hours: 10d }\n":               "raw must not",
		"history: { size: 1MB }\n":                              "from 8MB to 64GB",
		"history: { size: 65GB }\n":                             "from 8MB to 64GB",
		"history: { size: 64 }\n":                               "such as 64MB",
		"history: { size: 64mb }\n":                             "such as 64MB",
		"history: { day: 1d }\n":                                "day",
	} {
		_, err := Parse("x.yaml", []byte("site: { name: x }\n"+text), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

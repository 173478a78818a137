package ops

import (
	"errors"
	"strings"
	"testing"
)

// TestReadEntries: a line has the level that the site wrote or, for others, that of its priority.
func TestReadEntries(t *testing.T) {
	const printed = `{"__CURSOR":"a","__REALTIME_TIMESTAMP":"1700000000000000","PRIORITY":"6","MESSAGE":"time=2023-11-14T22:13:20Z level=WARN msg=x a=1","_PID":"7"}
{"__CURSOR":"b","__REALTIME_TIMESTAMP":"1700000001000000","PRIORITY":"3","MESSAGE":"Failed to start"}
{"__CURSOR":"c","__REALTIME_TIMESTAMP":"x","MESSAGE":[104,105]}
{"__CURSOR":"d","PRIORITY":"6","MESSAGE":"time=now level=LOUD msg=y"}
`
	var got []string
	err := readEntries(strings.NewReader(printed), func(e journalEntry) error {
		l := e.line()
		got = append(got, e.Cursor+" "+l.Time.UTC().Format("05")+" "+l.Level+" "+l.Text)
		return nil
	})
	want := "a 20 WARN msg=x a=1\nb 21 ERROR Failed to start\nc 00 INFO (a line that is no text)\nd 00 INFO time=now " +
		"level=LOUD msg=y"
	if strings.Join(got, "\n") != want || err != nil {
		t.Errorf("%v\n%s", err, strings.Join(got, "\n"))
	}
	stop := errors.New("stop")
	if err := readEntries(strings.NewReader(printed), func(journalEntry) error { return stop }); err != stop {
		t.Error(err)
	}
	if err := readEntries(strings.NewReader("no json\n"), nil); err == nil {
		t.Error("no entry is read as one")
	}
}

func FuzzReadEntries(f *testing.F) {
	f.Add(`{"__CURSOR":"a","PRIORITY":"6","MESSAGE":"time=x level=INFO msg=y"}`)
	f.Fuzz(func(t *testing.T, text string) {
		readEntries(strings.NewReader(text), func(e journalEntry) error {
			if l := e.line(); l.Level == "" {
				t.Errorf("%q has no level", text)
			}
			return nil
		})
	})
}

package log

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestErrorsAlone(t *testing.T) {
	var out bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	defer slog.SetDefault(before)
	l := Logger("dht")
	l.Warnf("%d peers", 3)
	if out.Len() != 0 {
		t.Errorf("a warning is shown: %s", &out)
	}
	l.Errorw("no peers", "table", "empty")
	for _, want := range []string{"level=ERROR", "no peers", "library=dht", "table=empty"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is missing in %s", want, &out)
		}
	}
}

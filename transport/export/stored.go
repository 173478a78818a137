package export

import (
	"fmt"
	"log/slog"
	"time"

	"agentsite/agents"
	"agentsite/device"

	"github.com/go-json-experiment/json"
)

// MaxFile bounds the file.
const MaxFile = 4 << 20

const (
	// keepEvery is the time between two writes of the file, beside that at a clean end. What was sent since the last one
	// is sent again after a crash: a store drops it, or refuses it as too old.
	keepEvery = 10 * time.Minute
	// forget is when a point that is gone is forgotten: the history has its changes no more.
	forget = 90 * 24 * time.Hour
)

// file is the content of the file: for each point, up to which time it was sent, in Unix seconds.
type file struct {
	Version int              `json:"version"`
	Sent    map[string]int64 `json:"sent"`
}

// stored is the content of the file as it was written last.
type stored struct {
	at   time.Time // when it was written
	last map[string]int64
}

// keyOf names a series in the file. A point with another unit is another one; an address has no space.
func keyOf(p agents.Point) string {
	if p.Unit == "" {
		return p.Point
	}
	return p.Point + " " + p.Unit
}

// load reads the file.
func (s *sender) load() error {
	text, err := s.world.Load()
	if err != nil || text == nil {
		return err
	}
	var f file
	if err = json.Unmarshal(text, &f); err == nil && f.Version != 1 {
		err = fmt.Errorf("its version is %d, and this program knows 1", f.Version)
	}
	if err != nil {
		return device.Faultf(device.Unavailable, "what was sent of the history cannot be read, and nothing is sent: %w; "+
			"remove export.json from the data folder and reload", err)
	}
	for key, at := range f.Sent {
		s.all = append(s.all, &series{key: key, at: time.Unix(at, 0)})
	}
	return nil
}

// keep writes the file when it is due, or at once, if something has changed.
func (s *sender) keep(atOnce bool) {
	if !atOnce && !s.stored.at.IsZero() && time.Since(s.stored.at) < keepEvery {
		return
	}
	f := file{Version: 1, Sent: make(map[string]int64, len(s.all))}
	same := len(s.all) == len(s.stored.last)
	for _, x := range s.all {
		f.Sent[x.key] = x.at.Unix()
		same = same && s.stored.last[x.key] == f.Sent[x.key]
	}
	s.stored.at = time.Now()
	if same {
		return
	}
	text, err := json.Marshal(f, json.Deterministic(true))
	if err == nil {
		err = s.world.Store(text)
	}
	if err != nil {
		slog.Warn("remote write: what was sent is not stored, and sent again after a restart", "err", err)
		return
	}
	s.stored.last = f.Sent
}

// close stores what was sent, or removes the file with the export itself.
func (s *sender) close(removed bool) {
	s.client.CloseIdleConnections()
	if !removed {
		s.keep(true)
	} else if err := s.world.Store(nil); err != nil {
		slog.Warn("remote write: its file is not removed", "err", err)
	}
}

package internet

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"agentsite/node/identity"
	"agentsite/node/state"
)

const allowInterval = 10 * time.Second // between looks at the file

// allowlist is a file of keys, a line each; # begins a comment.
type allowlist struct {
	file    string
	version state.FileVersion // that was read last

	mu   sync.Mutex
	keys map[identity.ID]bool
}

func (l *allowlist) has(id identity.ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.keys[id]
}

// follow reads the file again after each change, until ctx ends. A file with a mistake
// changes nothing.
func (l *allowlist) follow(ctx context.Context) {
	every := time.NewTicker(allowInterval)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		if now, ok := state.VersionOf(l.file); !ok || now == l.version {
			continue
		}
		if err := l.read(); err != nil {
			slog.Error("allowlist not read; the previous one stays in use", "err", err)
		}
	}
}

func (l *allowlist) read() error {
	l.version, _ = state.VersionOf(l.file)
	text, err := os.ReadFile(l.file)
	if err != nil {
		return err
	}
	keys := make(map[identity.ID]bool)
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		id, err := identity.Parse(line)
		if err != nil {
			return fmt.Errorf("%s:%d: %w", l.file, n, err)
		}
		keys[id] = true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys = keys
	return lines.Err()
}

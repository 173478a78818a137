package agent

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"agentsite/device"
)

// unclaimed is the pause between two looks whether the site has an owner.
const unclaimed = 5 * time.Second

// Status is a Report that changes, to be embedded in an Agent, which it makes Reporting. It is safe for concurrent use.
type Status struct {
	mu     sync.Mutex
	report Report
}

// Report implements Reporting.
func (s *Status) Report(context.Context) Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.report
}

// Say replaces the report.
func (s *Status) Say(state State, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report = Report{State: state, Says: fmt.Sprintf(format, args...)}
}

// AwaitOwner returns when claimed reports that the site has an owner, or with ctx's error. Meanwhile it reports why.
func (s *Status) AwaitOwner(ctx context.Context, claimed func() bool, why string) error {
	for !claimed() {
		s.Say(Waiting, "%s", why)
		if err := device.Sleep(ctx, unclaimed); err != nil {
			return err
		}
	}
	return nil
}

// letters are those of the names of files of secrets.
const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

// IsFile reports whether name can be that of a file beside the configuration, such as one with a secret.
func IsFile(name string) bool {
	return name != "" && len(name) <= 64 && strings.Trim(name, letters+".-") == "" && !strings.Contains(".-", name[:1])
}

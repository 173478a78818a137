package site

import (
	"testing"

	"agentsite/device"
)

// TestScanGate: while one caller looks for connected parts, another is refused, and the next one is not.
func TestScanGate(t *testing.T) {
	s := new(site)
	s.scanning.Lock()
	if _, err := s.scan(t.Context()); device.AsFault(err).Kind != device.Busy {
		t.Errorf("a second search of the buses: %v", err)
	}
	s.scanning.Unlock()
	s.Folder = "x"
	if _, err := s.scan(t.Context()); err != nil && device.AsFault(err).Kind == device.Busy {
		t.Errorf("the next one: %v", err)
	}
}

package site

import (
	"context"

	"agentsite/cmd/internal/hosting"
	"agentsite/cmd/internal/ops"
	"agentsite/cmd/internal/peer"
	"agentsite/device"
	"agentsite/node/acts"
	"agentsite/node/config"
	"agentsite/node/state"
)

// Diagnose is ops.Diagnose with the checks of all parts, and a connection to the site that runs from the folder.
func Diagnose(ctx context.Context, o ops.DoctorOptions) ops.Diagnosis {
	o.Checks, o.Doubts = []func(*config.Site) error{hosting.Check}, hosting.Doubts
	o.Dial = dialer(o.Folder)
	return ops.Diagnose(ctx, o)
}

// ReportBoard is ops.ReportBoard with a connection to the site that runs from the folder.
func ReportBoard(ctx context.Context, o ops.BoardReportOptions) (*ops.BoardReport, error) {
	o.Dial = dialer(o.Folder)
	return ops.ReportBoard(ctx, o)
}

// dialer returns a function that connects to the site that runs from a folder.
func dialer(f state.Folder) func() (*ops.RunningSite, error) {
	return func() (*ops.RunningSite, error) {
		c, err := peer.Dial(peer.Target{Folder: f})
		if err != nil {
			return nil, err
		}
		return &ops.RunningSite{Owner: c.Owner, Site: c, Closer: c}, nil
	}
}

// doctor returns what agentsite doctor finds on the site's machine, to one caller at a time.
func (s *site) doctor(ctx context.Context) (acts.Diagnosis, error) {
	if !s.diagnosing.TryLock() {
		return acts.Diagnosis{}, device.Faultf(device.Busy, "the machine is looked at already: ask again in seconds")
	}
	defer s.diagnosing.Unlock()
	o := ops.DoctorOptions{Config: s.absFile, Drivers: s.drivers, Folder: s.Folder, Itself: true}
	return Diagnose(ctx, o).Answer(), nil
}

// scan finds the parts at the site's board that its configuration does not have, for one caller at a time: searches
// of one bus disturb each other.
func (s *site) scan(ctx context.Context) (acts.Scanned, error) {
	if s.Simulate {
		return acts.Scanned{}, errSimulated
	}
	if !s.scanning.TryLock() {
		return acts.Scanned{}, device.Faultf(device.Busy, "parts are looked for already: ask again in half a minute")
	}
	defer s.scanning.Unlock()
	found, err := ops.Scan(ctx, ops.ScanOptions{Config: s.absFile, Drivers: s.drivers, Folder: s.Folder, Board: s.board})
	if err != nil {
		return acts.Scanned{}, err
	}
	return found.Answer(), nil
}

// pinout returns the header that the configuration is wired to, as its file is now.
func (s *site) pinout() (acts.Pinout, error) {
	if s.absFile == "" { // the demonstration
		return ops.AnswerPinout(ops.PinoutOf(s.config, "")), nil
	}
	p, err := ops.ReadPinout(ops.PinoutOptions{Config: s.absFile, Drivers: s.drivers})
	if err != nil {
		return acts.Pinout{}, device.Faultf(device.Invalid, "%w", err)
	}
	return ops.AnswerPinout(p), nil
}

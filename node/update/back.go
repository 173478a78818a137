package update

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

const backName = "back.json"

// wish is the superuser's request to go back, in a file of the folder of programs. It ends with the
// next start of the service, and where the program in use has changed before.
type wish struct {
	From uint64 `json:"from"` // the sequence of the program in use
	To   uint64 `json:"to"`   // 0 for the package's program
}

// Back has the next start of the service use the version before the one in use, and returns it: the
// last proven update that is still here, or the package's program, the zero Program. It removes the
// updates that wait. Only the superuser can write the request. The floor stays: from then on, only
// the versions that the board went back from, and newer ones, are accepted.
func (p Programs) Back() (Program, error) {
	s, err := p.State()
	if err != nil {
		return Program{}, err
	}
	if s.InUse.Sequence == 0 {
		return Program{}, Refused{errors.New("the service runs the package's program, and no version before it is here: " +
			"install the package of that version, with sudo apt install agentsite=VERSION")}
	}
	to := s.Before
	// After a return, the program before is the newer one.
	if to.Sequence >= s.InUse.Sequence || to.Sequence > 0 && p.verify(to) != nil {
		to = Program{}
	}
	for _, folder := range []string{p.path(inboxName), p.Dir} {
		if err := forgetIn(folder, waitName); err != nil {
			return Program{}, err
		}
	}
	return to, WriteJSON(p.Dir, backName, wish{s.InUse.Sequence, to.Sequence})
}

// GoBack carries out a request of Back and returns the program then in use; nil without a request.
// An update that it returns to is on trial, as a new one. The caller calls Settle before, and does
// not call Install in the same start.
func (p Programs) GoBack() (*Program, error) {
	if _, err := os.Lstat(p.path(backName)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var w wish
	err := ReadJSON(p.Dir, backName, &w)
	// It is tried once, as an update is.
	if err = errors.Join(err, forgetIn(p.Dir, backName)); err != nil {
		return nil, err
	}
	s, err := p.State()
	if err != nil {
		return nil, err
	}
	switch {
	case s.Trial || s.InUse.Sequence != w.From || w.To > 0 && s.Before.Sequence != w.To:
		return nil, errors.New("the program in use has changed since the request to go back: request it again")
	case w.To == 0:
		s.InUse, s.Before = Program{}, Program{}
	default:
		if err := errors.Join(p.verify(s.Before), p.forgetProof()); err != nil {
			return nil, fmt.Errorf("the service does not go back to %s: %w", s.Before.Version, err)
		}
		s.InUse, s.Before, s.Trial = s.Before, s.InUse, true
	}
	if err := p.save(s); err != nil {
		return nil, err
	}
	return &s.InUse, p.link(s.InUse)
}

// forgetIn removes a file of a folder durably, if it is there.
func forgetIn(folder, name string) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	return errors.Join(remove(root, name), syncFolder(root))
}

//go:build linux

package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"agentsite/node/update"
)

// slots are the two partitions for versions of the image. autoboot.txt on the boot
// partition tells the board's firmware which one to start, and which one, once, when the
// board was restarted by "0 tryboot"; the firmware forgets that before it starts it. So
// whatever becomes of a version that is tried, the proven one is started after it.
//
// An update is written to the slot that does not run. It is tried, and made the one to
// start when its site is well. Each step is one that a cut leaves undone or done.
type slots struct {
	boot   string // the boot partition's folder
	folder string // for the state, and the inbox where updates wait
	open   func(n int) (disk, error)
	rules  update.Rules // with the sequence of the version that runs

	mu    sync.Mutex
	state slotState
}

// disk is a slot to write to and to read. What was written before Sync is read from it, and
// not from memory, afterwards.
type disk interface {
	io.ReaderAt
	io.WriterAt
	io.Seeker
	io.Closer
	Sync() error
}

// slotState is what is known of updates.
type slotState struct {
	Form   int    `json:"form"`
	Floor  uint64 `json:"floor,omitzero"` // the greatest sequence that was ever well
	Trial  trial  `json:"trial,omitzero"`
	Tries  int    `json:"tries,omitzero"`  // how often the board was restarted for it
	Failed trial  `json:"failed,omitzero"` // the last that was tried and was not well
}

type trial struct {
	Version  string `json:"version"`
	Sequence uint64 `json:"sequence"`
	Slot     int    `json:"slot"`
}

// mostTries is how often a version is tried that neither proved itself nor gave up: the
// power may have failed, or its kernel hangs.
const mostTries = 3

const (
	slotForm  = 1
	target    = "image/arm64" // of updates that are taken
	stateName = "slots.json"
	autoboot  = "autoboot.txt"
	cardFile  = "agentsite.update" // on the boot partition, by whoever has the card in a computer
	inboxFile = "inbox/next"       // in the folder, by the site
)

// read reads the state.
func (s *slots) read() error {
	s.state.Form = slotForm
	err := update.ReadJSON(s.folder, stateName, &s.state)
	if err == nil && s.state.Form != slotForm {
		err = fmt.Errorf("it has the form %d, and this version knows %d", s.state.Form, slotForm)
	}
	if err != nil {
		s.state = slotState{Form: slotForm}
		err = fmt.Errorf("what is known of updates cannot be read: %w", err)
	}
	return err
}

// settle ends a trial that is over: another version runs than the one that was tried, or it
// starts by itself already, which was not noted any more. One that did not come to its end
// is not over: take has it tried again.
func (s *slots) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.state
	t := next.Trial
	if t == (trial{}) {
		return
	}
	other, err := s.other()
	switch {
	case err == nil && s.runs(t) && other != t.Slot:
		next.Floor = max(next.Floor, t.Sequence)
	case !s.runs(t) && next.Tries >= mostTries:
		say("%s was tried and was not well; %s is back", t.Version, version)
		next.Failed = t
	default:
		return
	}
	next.Trial, next.Tries = trial{}, 0
	if err := s.save(next); err != nil {
		say("that is not kept: %v", err)
		s.state = next // the next start decides the same again
	}
}

// runs reports whether a version is the one that runs.
func (s *slots) runs(t trial) bool { return t != (trial{}) && t.Sequence == s.rules.Sequence }

// onTrial reports whether the version that runs has yet to show that it is well.
func (s *slots) onTrial() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs(s.state.Trial)
}

// prove says that the version that runs is well, and has it started from now on.
func (s *slots) prove() {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.state
	next.Floor = max(next.Floor, s.rules.Sequence)
	if s.runs(next.Trial) {
		if err := s.writeAutoboot(next.Trial.Slot); err != nil {
			say("%s is well, which is not kept: %v", version, err)
			return
		}
		next.Trial, next.Tries = trial{}, 0
	} else if next == s.state {
		return
	}
	// Cut between the two, or where this fails, it starts by itself: settle.
	err := s.save(next)
	if s.state = next; err != nil {
		say("%s is well and stays, which is not noted: %v", version, err)
		return
	}
	say("%s is well and stays", version)
}

// giveUp says that the version on trial is not well, so that it is not tried again.
func (s *slots) giveUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.state
	next.Tries = mostTries
	if err := s.save(next); err != nil {
		say("that is not kept: %v", err)
	}
}

// take writes an update that waits to the other slot, and reports whether the board is to
// try it now. What it refuses does not wait any more. One that was not tried to its end is
// tried first.
func (s *slots) take() bool {
	if s.again() {
		return true
	}
	for _, path := range []string{filepath.Join(s.boot, cardFile), filepath.Join(s.folder, inboxFile)} {
		taken, err := s.takeFile(path)
		if err != nil {
			say("the update %s is not taken: %v", path, err)
		}
		if taken {
			return true
		}
	}
	return false
}

// again reports whether the board is to try once more what it was restarted for before. It
// is counted before: a state that cannot be saved restarts nothing.
func (s *slots) again() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.state
	if next.Trial == (trial{}) || s.runs(next.Trial) {
		return false
	}
	next.Tries++
	if err := s.save(next); err != nil {
		say("%s is not tried again: %v", next.Trial.Version, err)
		return false
	}
	say("%s did not come to the end of its trial, and is tried again", next.Trial.Version)
	return true
}

func (s *slots) takeFile(path string) (taken bool, err error) {
	folder, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return false, err
	}
	defer folder.Close()
	f, err := update.OpenFile(folder, filepath.Base(path))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.Trial != (trial{}) {
		return false, fmt.Errorf("%s is on trial", s.state.Trial.Version) // it waits
	}
	t, err := s.install(f)
	// Taken or not, it is read once: it would only be refused again, or tried again.
	if err = errors.Join(err, folder.Remove(filepath.Base(path))); err != nil {
		return false, err
	}
	next := s.state
	next.Trial, next.Tries = t, 1
	if err := s.save(next); err != nil {
		return false, err
	}
	say("%s is on the card, and is tried now", t.Version)
	return true, nil
}

// install writes an update to the slot that does not run.
func (s *slots) install(r io.Reader) (trial, error) {
	u, err := update.Read(r, s.rules.Keys)
	if err != nil {
		return trial{}, err
	}
	if err := s.rules.Check(u.Release, s.state.Floor); err != nil {
		return trial{}, err
	}
	if u.Sequence == s.state.Failed.Sequence {
		return trial{}, fmt.Errorf("%s was tried before and was not well: get a newer one", u.Version)
	}
	n, err := s.other()
	if err != nil {
		return trial{}, err
	}
	dev, err := s.open(n)
	if err != nil {
		return trial{}, err
	}
	defer dev.Close()
	if size, err := dev.Seek(0, io.SeekEnd); err != nil || size < u.Size {
		return trial{}, errors.Join(err, fmt.Errorf("%s has %d bytes, and its place on the card %d: write its image to the card instead", u.Version, u.Size, size))
	}
	// Without its first sector nobody starts it, until all of it is known to be signed.
	if _, err := dev.WriteAt(make([]byte, sectorSize), 0); err != nil {
		return trial{}, err
	}
	w := &headLast{to: dev}
	if err := errors.Join(dev.Sync(), u.CopyTo(w), dev.Sync()); err != nil {
		return trial{}, err
	}
	if _, err := dev.WriteAt(w.head, 0); err != nil {
		return trial{}, err
	}
	if err := dev.Sync(); err != nil {
		return trial{}, err
	}
	// A card that is worn out takes what it does not keep.
	hash := sha256.New()
	if _, err := io.Copy(hash, io.NewSectionReader(dev, 0, u.Size)); err != nil {
		return trial{}, err
	}
	if [sha256.Size]byte(hash.Sum(nil)) != u.SHA256 {
		return trial{}, errors.New("the card does not keep what is written to it: replace the card")
	}
	return trial{u.Version, u.Sequence, n}, nil
}

// headLast writes to a file all but the first sector, which it keeps.
type headLast struct {
	to   io.WriterAt
	head []byte
	at   int64
}

func (h *headLast) Write(p []byte) (int, error) {
	n := min(len(p), sectorSize-len(h.head))
	h.head = append(h.head, p[:n]...)
	h.at += int64(n)
	m, err := h.to.WriteAt(p[n:], h.at)
	h.at += int64(m)
	return n + m, err
}

const otherSlot = firstSlot + 1

// autobootText is what the firmware reads. All of its forms are of one length, so that it
// is only ever written over, within one sector.
func autobootText(n int) string {
	return fmt.Sprintf("[all]\ntryboot_a_b=1\nboot_partition=%d\n[tryboot]\nboot_partition=%d\n", n, firstSlot+otherSlot-n)
}

// other is the slot that the firmware does not start by itself.
func (s *slots) other() (int, error) {
	text, err := os.ReadFile(filepath.Join(s.boot, autoboot))
	if err != nil {
		return 0, err
	}
	for n := firstSlot; n <= otherSlot; n++ {
		if strings.TrimSpace(string(text)) == strings.TrimSpace(autobootText(n)) {
			return firstSlot + otherSlot - n, nil
		}
	}
	return 0, fmt.Errorf("%s is not as the image had it: write the image to the card again, or make it\n%s", autoboot, autobootText(firstSlot))
}

func (s *slots) writeAutoboot(n int) error {
	f, err := os.OpenFile(filepath.Join(s.boot, autoboot), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(autobootText(n)), 0)
	return errors.Join(err, f.Sync(), f.Close())
}

// save makes that the state, on the card first: what is not there did not happen.
func (s *slots) save(next slotState) error {
	err := update.WriteJSON(s.folder, stateName, next)
	if err == nil {
		s.state = next
	}
	return err
}

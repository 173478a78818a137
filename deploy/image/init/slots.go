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

	"github.com/go-json-experiment/json"
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
	Failed trial  `json:"failed,omitzero"` // the last that was tried and was not well
}

type trial struct {
	Version  string `json:"version"`
	Sequence uint64 `json:"sequence"`
	Slot     int    `json:"slot"`
}

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
	text, err := os.ReadFile(filepath.Join(s.folder, stateName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, &s.state, json.RejectUnknownMembers(true))
	}
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
// starts by itself already, which was not noted any more.
func (s *slots) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.state.Trial
	if t == (trial{}) {
		return
	}
	other, err := s.other()
	switch {
	case t.Sequence != s.rules.Sequence:
		say("%s was tried and was not well; %s is back", t.Version, version)
		s.state.Failed = t
	case err == nil && other != t.Slot:
		s.state.Floor = max(s.state.Floor, t.Sequence)
	default:
		return
	}
	s.state.Trial = trial{}
	if err := s.save(); err != nil {
		say("that is not kept: %v", err)
	}
}

// onTrial reports whether the version that runs has yet to show that it is well.
func (s *slots) onTrial() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Trial != trial{}
}

// prove says that the version that runs is well, and has it started from now on.
func (s *slots) prove() {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.state.Trial
	if t == (trial{}) && s.state.Floor >= s.rules.Sequence {
		return
	}
	was := s.state
	s.state.Floor, s.state.Trial = max(s.state.Floor, s.rules.Sequence), trial{}
	var err error
	if t != (trial{}) {
		err = s.writeAutoboot(t.Slot)
	}
	// Cut between the two, it starts by itself: settle.
	if err = errors.Join(err, s.save()); err != nil {
		s.state = was
		say("%s is well, which is not kept: %v", version, err)
		return
	}
	say("%s is well and stays", version)
}

// take writes an update that waits to the other slot, and reports whether the board is to
// try it now. What it refuses does not wait any more.
func (s *slots) take() bool {
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

func (s *slots) takeFile(path string) (taken bool, err error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no file")
	}
	if err != nil {
		return false, err
	}
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.Trial != (trial{}) {
		return false, fmt.Errorf("%s is on trial", version) // it waits
	}
	next, err := s.install(f)
	// Taken or not, it is read once: it would only be refused again, or tried again.
	if err = errors.Join(err, os.Remove(path)); err != nil {
		return false, err
	}
	s.state.Trial = next
	if err := s.save(); err != nil {
		return false, err
	}
	say("%s is on the card, and is tried now", next.Version)
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

func (s *slots) save() error {
	text, err := json.Marshal(s.state)
	if err != nil {
		return err
	}
	path := filepath.Join(s.folder, stateName)
	f, err := os.Create(path + ".new")
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return err
	}
	d, err := os.Open(s.folder)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

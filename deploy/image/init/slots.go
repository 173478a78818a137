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
// partition tells the board's firmware which one to boot, and which one to boot once after
// the reboot "0 tryboot". The firmware clears that flag before it boots. So after a failed
// trial the confirmed version boots.
//
// An update is written to the inactive slot and booted on trial. It becomes the default when
// its site is healthy. Each step is atomic with respect to power failures.
type slots struct {
	boot   string // the boot partition's folder
	folder string // of the state and the inbox of updates
	open   func(n int) (disk, error)
	rules  update.Rules // with the sequence of the running version

	mu    sync.Mutex
	state slotState
}

// disk is a slot. After Sync, reads come from the disk and not from a cache.
type disk interface {
	io.ReaderAt
	io.WriterAt
	io.Seeker
	io.Closer
	Sync() error
}

// slotState is the stored state of updates.
type slotState struct {
	Form   int    `json:"form"`
	Floor  uint64 `json:"floor,omitzero"` // the greatest sequence that was ever healthy
	Trial  trial  `json:"trial,omitzero"`
	Tries  int    `json:"tries,omitzero"`  // number of boots of the trial
	Failed trial  `json:"failed,omitzero"` // the last version that failed its trial
}

type trial struct {
	Version  string `json:"version"`
	Sequence uint64 `json:"sequence"`
	Slot     int    `json:"slot"`
}

// maxTries is the number of boots of a version on trial that is neither confirmed nor rejected. The
// power may have failed, or its kernel hangs.
const maxTries = 3

const (
	slotForm  = 1
	target    = "image/arm64" // of accepted updates
	stateName = "slots.json"
	autoboot  = "autoboot.txt"
	cardFile  = "agentsite.update" // on the boot partition, copied there on another computer
	inboxFile = "inbox/next"       // in the folder, written by the site
)

// read reads the state.
func (s *slots) read() error {
	s.state.Form = slotForm
	err := update.ReadJSON(s.folder, stateName, &s.state)
	if err == nil && s.state.Form != slotForm {
		err = fmt.Errorf("unknown form %d; this version reads form %d", s.state.Form, slotForm)
	}
	if err != nil {
		s.state = slotState{Form: slotForm}
		err = fmt.Errorf("the state of updates cannot be read: %w", err)
	}
	return err
}

// endTrial ends a trial at boot if it is over. Either the version is the default already, which
// could not be saved, or it has used up its tries and the previous version is back. Else
// installWaiting boots the version on trial again.
func (s *slots) endTrial() {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.state
	t := next.Trial
	if t == (trial{}) {
		return
	}
	other, err := s.other()
	switch {
	case err == nil && s.isRunning(t) && other != t.Slot:
		next.Floor = max(next.Floor, t.Sequence)
	case !s.isRunning(t) && next.Tries >= maxTries:
		logf("%s failed its trial; %s is back", t.Version, version)
		next.Failed = t
	default:
		return
	}
	next.Trial, next.Tries = trial{}, 0
	if err := s.save(next); err != nil {
		logf("the state of updates cannot be saved: %v", err)
		s.state = next // the next boot decides the same again
	}
}

// isRunning reports whether a version is the running one.
func (s *slots) isRunning(t trial) bool { return t != (trial{}) && t.Sequence == s.rules.Sequence }

// onTrial reports whether the running version is on trial.
func (s *slots) onTrial() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isRunning(s.state.Trial)
}

// confirm records that the running version is healthy, and makes it the default.
func (s *slots) confirm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.state
	next.Floor = max(next.Floor, s.rules.Sequence)
	if s.isRunning(next.Trial) {
		if err := s.writeAutoboot(next.Trial.Slot); err != nil {
			logf("%s is healthy, but cannot become the default: %v", version, err)
			return
		}
		next.Trial, next.Tries = trial{}, 0
	} else if next == s.state {
		return
	}
	// If this fails, or the power fails before it, the version is the default already, and
	// endTrial ends the trial.
	err := s.save(next)
	if s.state = next; err != nil {
		logf("%s is confirmed, but the state of updates cannot be saved: %v", version, err)
		return
	}
	logf("%s is confirmed", version)
}

// reject ends the trial of the running version, so that it is not booted again.
func (s *slots) reject() {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.state
	next.Tries = maxTries
	if err := s.save(next); err != nil {
		logf("the state of updates cannot be saved: %v", err)
	}
}

// installWaiting writes a waiting update to the inactive slot, and reports whether to boot
// that slot now. It removes an update that it refuses. An unfinished trial comes first.
func (s *slots) installWaiting() bool {
	if s.retryTrial() {
		return true
	}
	for _, path := range []string{filepath.Join(s.boot, cardFile), filepath.Join(s.folder, inboxFile)} {
		installed, err := s.installFile(path)
		if err != nil {
			logf("the update %s is not installed: %v", path, err)
		}
		if installed {
			return true
		}
	}
	return false
}

// retryTrial reports whether to boot the version on trial again. It counts the try first: if
// the state cannot be saved, it does not reboot.
func (s *slots) retryTrial() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.state
	if next.Trial == (trial{}) || s.isRunning(next.Trial) {
		return false
	}
	next.Tries++
	if err := s.save(next); err != nil {
		logf("%s is not tried again: %v", next.Trial.Version, err)
		return false
	}
	logf("%s did not finish its trial, and is tried again", next.Trial.Version)
	return true
}

// installFile installs the update in a file, if there is one, and removes the file.
func (s *slots) installFile(path string) (installed bool, err error) {
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
		return false, fmt.Errorf("%s is on trial", s.state.Trial.Version) // the update waits
	}
	t, err := s.install(f)
	// The file is removed in any case: a second try would give the same result.
	if err = errors.Join(err, folder.Remove(filepath.Base(path))); err != nil {
		return false, err
	}
	next := s.state
	next.Trial, next.Tries = t, 1
	if err := s.save(next); err != nil {
		return false, err
	}
	logf("%s is installed, and is tried now", t.Version)
	return true, nil
}

// install writes an update to the inactive slot.
func (s *slots) install(r io.Reader) (trial, error) {
	u, err := update.Read(r, s.rules.Keys)
	if err != nil {
		return trial{}, err
	}
	if err := s.rules.Check(u.Release, s.state.Floor); err != nil {
		return trial{}, err
	}
	if u.Sequence == s.state.Failed.Sequence {
		return trial{}, fmt.Errorf("%s failed its trial before: get a newer version", u.Version)
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
		return trial{}, errors.Join(err, fmt.Errorf("%s has %d bytes, and its slot on the card %d: write its image to the card instead", u.Version, u.Size, size))
	}
	// The first sector is written last, after the signature of the whole is verified, because
	// the firmware boots no slot without it.
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
	// A worn-out card accepts writes that it does not store.
	hash := sha256.New()
	if _, err := io.Copy(hash, io.NewSectionReader(dev, 0, u.Size)); err != nil {
		return trial{}, err
	}
	if [sha256.Size]byte(hash.Sum(nil)) != u.SHA256 {
		return trial{}, errors.New("the card does not store what is written to it: replace the card")
	}
	return trial{u.Version, u.Sequence, n}, nil
}

// headLast writes everything except the first sector, which it keeps in head.
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

// autobootText returns autoboot.txt with slot n as the default. All variants have the same
// length, so that they can be overwritten in place, within one sector.
func autobootText(n int) string {
	return fmt.Sprintf("[all]\ntryboot_a_b=1\nboot_partition=%d\n[tryboot]\nboot_partition=%d\n", n, firstSlot+otherSlot-n)
}

// other returns the slot that is not the default.
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
	return 0, fmt.Errorf("%s has unknown content: write the image to the card again, or replace it by\n%s", autoboot, autobootText(firstSlot))
}

func (s *slots) writeAutoboot(n int) error {
	f, err := os.OpenFile(filepath.Join(s.boot, autoboot), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(autobootText(n)), 0)
	return errors.Join(err, f.Sync(), f.Close())
}

// writeState is update.WriteJSON; tests have it fail.
var writeState = update.WriteJSON

// save writes the state to the card, and only then changes it in memory.
func (s *slots) save(next slotState) error {
	err := writeState(s.folder, stateName, next)
	if err == nil {
		s.state = next
	}
	return err
}

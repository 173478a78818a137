package site

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"agentsite/device/board"
	"agentsite/device/driver"
	"agentsite/node/access"
	"agentsite/node/config"
	"agentsite/node/devices"
	"agentsite/node/state"
)

// What is on the boot partition: the part of an SD card that any computer can read, and
// that a screen and a keyboard are not needed for.
const (
	bootConfig  = config.DefaultFile              // of the owner; never written
	bootExample = config.DefaultFile + ".example" // of ours, where the owner has written none
	bootErrors  = "agentsite-errors.txt"          // while what the owner wrote is not taken
)

//go:embed firstboot.yaml
var exampleConfig []byte

// keepsLooking is a line of a configuration. While it stands there, sensors are added to
// the file as they are found: somebody who wires one needs no command.
const keepsLooking = "# At each start, agentsite adds the sensors that it finds, until you delete this line."

// mostScan bounds the scan: a bus that hangs must not keep the site from starting.
const mostScan = 20 * time.Second

// bootFolder is where the boot partition is mounted, "" for nowhere: the one that was
// named, or a Raspberry Pi's.
func bootFolder(named, root string) (string, error) {
	if named != "" {
		info, err := os.Stat(named)
		if err == nil && !info.IsDir() {
			err = errors.New(named + " is no folder")
		}
		if err != nil {
			return "", fmt.Errorf("there is no boot partition: %w; name the folder where it is mounted with --boot", err)
		}
		return named, nil
	}
	file := board.New().Below(root).ConfigFile()
	if file == "" {
		return "", nil
	}
	file = filepath.Join(root, file)
	if _, err := os.Stat(file); err != nil {
		return "", nil // it is not mounted
	}
	return filepath.Dir(file), nil
}

// firstBoot brings the owner's configuration from the boot partition, or makes one of the
// sensors that are found, and says what it did. Whatever goes wrong on the partition, the
// rest is done.
func firstBoot(ctx context.Context, o PrepareOptions) (did []string, err error) {
	if file, err := filepath.EvalSymlinks(o.Config); err == nil { // a link stays one
		o.Config = file
	}
	boot, err := bootFolder(o.Boot, o.Root)
	errs := []error{err}
	if boot != "" {
		lines, err := takeConfig(boot, o)
		did, errs = append(did, lines...), append(errs, err)
	}
	lines, err := lookForSensors(ctx, o)
	did, errs = append(did, lines...), append(errs, err)
	if boot != "" {
		lines, err := showClaim(boot, o.Folder)
		did, errs = append(did, lines...), append(errs, err)
	}
	return did, errors.Join(errs...)
}

// takeConfig makes what the owner has written on the boot partition the configuration, if
// it is right and was not taken before: a later change of the configuration by another way
// stays until the owner changes the file there, too. What it replaces is kept beside it.
func takeConfig(boot string, o PrepareOptions) (did []string, err error) {
	file := o.Config
	source := filepath.Join(boot, bootConfig)
	text, err := state.ReadUntrusted(source, config.MaxBytes)
	if err != nil {
		return nil, refuse(boot, source, err)
	}
	if text == nil {
		return noConfig(boot)
	}
	taken := file + ".taken"
	now, err := state.ReadUntrusted(file, config.MaxBytes)
	if err != nil {
		return nil, err
	}
	last, _ := state.ReadUntrusted(taken, config.MaxBytes) // what cannot be read is not the same
	if now != nil && last != nil && bytes.Equal(last, text) {
		return nil, tell(boot, bootErrors, nil)
	}
	cfg, err := config.Parse(bootConfig, text, AllDrivers())
	if err == nil {
		err = devices.CheckDevices(cfg)
	}
	if err != nil {
		return nil, refuse(boot, source, err)
	}
	if now != nil && !bytes.Equal(now, text) {
		if err := state.WriteAtomic(file+".old", now, 0o600); err != nil {
			return nil, fmt.Errorf("%s is not taken: what it would replace cannot be kept: %w", source, err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, fmt.Errorf("%s is not taken: %w", source, err)
	}
	if err := o.writeConfig(text); err != nil {
		return nil, fmt.Errorf("%s is not taken: %w", source, err)
	}
	// A loss of power before this has it taken once more, which changes nothing.
	err = errors.Join(state.WriteAtomic(taken, text, 0o600), tell(boot, bootErrors, nil))
	return []string{"take " + source + " as " + file}, err
}

// writeConfig replaces the configuration. It may have secrets in it, so that beside the
// superuser only the data folder's group reads it, which is the site's.
func (o PrepareOptions) writeConfig(text []byte) error {
	if err := state.WriteAtomic(o.Config, text, 0o640); err != nil {
		return err
	}
	info, err := os.Stat(string(o.Folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = state.CopyOwner(o.Config, info, false)
	}
	return err
}

// refuse tells the owner, beside the file, why it is not taken.
func refuse(boot, source string, why error) error {
	says := fmt.Appendf(nil, "%s on this card has mistakes and is not used; the board goes on as before.\nMend it and start the board again.\n\n%v\n", bootConfig, why)
	return errors.Join(fmt.Errorf("%s is not taken: %w", source, why), tell(boot, bootErrors, says))
}

// noConfig leaves an example where the owner has written no configuration, and says what
// may be wrong where one seems to be meant.
func noConfig(boot string) (did []string, err error) {
	for _, near := range []string{bootConfig + ".txt", "agentsite.yml"} {
		if _, err := os.Stat(filepath.Join(boot, near)); err == nil {
			return nil, tell(boot, bootErrors, fmt.Appendf(nil, "%s is not read, because of its name: call it %s.\nOn Windows, have Explorer show the ends of names (View, Show, File name extensions).\n", near, bootConfig))
		}
	}
	example := filepath.Join(boot, bootExample)
	_, err = os.Stat(example)
	if errors.Is(err, fs.ErrNotExist) { // one that is there may have somebody's changes
		err = tell(boot, bootExample, exampleConfig)
		did = []string{"write " + example}
	}
	if err != nil {
		did = nil
	}
	return did, errors.Join(err, tell(boot, bootErrors, nil))
}

// refused says that what the owner wrote on the boot partition is not in use.
func refused(root string) []driver.Finding {
	boot, err := bootFolder("", root)
	if err != nil || boot == "" {
		return nil
	}
	file := filepath.Join(boot, bootErrors)
	if _, err := os.Stat(file); err != nil {
		return nil
	}
	return []driver.Finding{{Severity: driver.Problem, Subject: bootConfig, Says: "what is written on the boot partition is not used", Do: "read " + file + ", mend it and start the board again"}}
}

// lookForSensors makes the configuration of what is wired up where there is none, and adds
// to one that says so. Outputs it never adds: what is safe, only their owner can say.
func lookForSensors(ctx context.Context, o PrepareOptions) (did []string, err error) {
	text, err := state.ReadUntrusted(o.Config, config.MaxBytes)
	if err != nil {
		return nil, err
	}
	if text == nil {
		text = fmt.Appendf(nil, "%s\n# What you may write here is in docs/configuration.md; agentsite check FILE checks it.\nsite: { name: %s }\ndevices:\n", keepsLooking, siteName())
		if err := os.MkdirAll(filepath.Dir(o.Config), 0o755); err != nil {
			return nil, err
		}
		if err := o.writeConfig(text); err != nil {
			return nil, fmt.Errorf("the configuration cannot be written: %w", err)
		}
		did = append(did, "make "+o.Config)
	}
	if !bytes.Contains(text, []byte(keepsLooking)) {
		return did, nil
	}
	ctx, cancel := context.WithTimeout(ctx, mostScan)
	defer cancel()
	found, err := Scan(ctx, ScanOptions{Config: o.Config, Folder: o.Folder, Root: o.Root, board: o.board})
	if err != nil {
		return did, err
	}
	var errs []error
	for _, f := range found.Trouble {
		errs = append(errs, errors.New(f.Says))
	}
	if len(found.Add) > 0 && !found.Running {
		if err := found.Write(); err != nil {
			return did, errors.Join(append(errs, err)...)
		}
		for _, d := range found.Add {
			did = append(did, "add "+d.Name+": "+d.YAML)
		}
	}
	return did, errors.Join(errs...)
}

// ShowClaim has the file on the boot partition say how to claim the site, as long as
// nobody owns it: it is for the superuser, each time that ReadInvitation changes.
func ShowClaim(o PrepareOptions) (did []string, err error) {
	if err := superuser(o); err != nil {
		return nil, err
	}
	boot, err := bootFolder(o.Boot, o.Root)
	if err != nil || boot == "" {
		return nil, err
	}
	return showClaim(boot, o.Folder)
}

func showClaim(boot string, f state.Folder) (did []string, err error) {
	file := filepath.Join(boot, state.ClaimFile)
	_, err = os.Stat(file)
	there := err == nil
	i, unclaimed, err := ReadInvitation(f)
	if err != nil {
		return nil, fmt.Errorf("how to claim the site is not told in %s: %w", file, err)
	}
	if !unclaimed {
		if there {
			did = []string{"remove " + file}
		}
		return did, tell(boot, state.ClaimFile, nil)
	}
	if now, _ := state.ReadUntrusted(file, 4096); bytes.Equal(now, i.Text()) {
		return nil, nil
	}
	return []string{"write " + file}, tell(boot, state.ClaimFile, i.Text())
}

// tell leaves a file of ours on the boot partition with that text, or none for no text.
// What is so already is not written again.
func tell(boot, name string, text []byte) error {
	file := filepath.Join(boot, name)
	if text == nil {
		err := os.Remove(file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		state.SyncFolder(boot)
		return err
	}
	if now, _ := state.ReadUntrusted(file, int64(len(text))); bytes.Equal(now, text) {
		return nil
	}
	if err := state.WriteAtomic(file, text, 0); err != nil {
		return fmt.Errorf("the boot partition cannot be written: %w", err)
	}
	return nil
}

// ReadInvitation returns the address to claim the folder's site by. ok is false where there
// is none, because somebody owns the site or none has run yet.
func ReadInvitation(f state.Folder) (i access.Invitation, ok bool, err error) {
	text, err := state.ReadUntrusted(f.Path(state.ClaimFile), 4096)
	if text == nil || err != nil {
		return i, false, err
	}
	i, err = access.FindInvitation(text)
	return i, err == nil, err
}

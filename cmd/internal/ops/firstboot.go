package ops

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

// The files on the boot partition, which any computer can read and write, so that a board
// needs neither screen nor keyboard.
const (
	bootConfig  = config.DefaultFile              // written by the owner only
	bootExample = config.DefaultFile + ".example" // an example, where there is no bootConfig
	bootErrors  = "agentsite-errors.txt"          // the mistakes of a bootConfig that is not used
)

//go:embed firstboot.yaml
var exampleConfig []byte

// autoAddLine is a line of a configuration. While the file has it, each start adds the
// sensors that it finds, so that wiring one needs no command.
const autoAddLine = "# At each start, agentsite adds the sensors that it finds, until you delete this line."

// scanTimeout bounds the scan: a bus that hangs must not keep the site from starting.
const scanTimeout = 20 * time.Second

// bootFolder returns where the boot partition is mounted, "" for nowhere: the named folder,
// or a Raspberry Pi's.
func bootFolder(named, root string) (string, error) {
	if named != "" {
		info, err := os.Stat(named)
		if err == nil && !info.IsDir() {
			err = errors.New(named + " is no folder")
		}
		if err != nil {
			return "", fmt.Errorf("there is no boot partition: %w; set its folder with --boot", err)
		}
		return named, nil
	}
	file := board.On(board.Machine{Root: root}).ConfigFile()
	if file == "" {
		return "", nil
	}
	file = filepath.Join(root, file)
	if _, err := os.Stat(file); err != nil {
		return "", nil // it is not mounted
	}
	return filepath.Dir(file), nil
}

// firstBoot copies the owner's configuration from the boot partition, or creates one of the sensors
// that it finds, and returns the completed steps. An error on the partition does not keep it from
// the rest.
func firstBoot(ctx context.Context, o PrepareOptions) (did []string, err error) {
	if file, err := filepath.EvalSymlinks(o.Config); err == nil { // a link stays one
		o.Config = file
	}
	boot, err := bootFolder(o.Boot, o.Root)
	errs := []error{err}
	if boot != "" {
		lines, err := copyConfig(boot, o)
		did, errs = append(did, lines...), append(errs, err)
	}
	lines, err := addSensors(ctx, o, fmt.Sprintf("site: { name: %s }\n", SiteName()))
	did, errs = append(did, lines...), append(errs, err)
	if boot != "" {
		lines, err := writeClaim(boot, o.Folder)
		did, errs = append(did, lines...), append(errs, err)
	}
	return did, errors.Join(errs...)
}

// copyConfig copies the owner's file from the boot partition to the configuration, unless it has
// mistakes or was copied before. A later change of the configuration on the board stays until the
// owner also changes the file on the boot partition. The replaced file is kept beside the new one.
func copyConfig(boot string, o PrepareOptions) (did []string, err error) {
	file := o.Config
	source := filepath.Join(boot, bootConfig)
	text, err := state.ReadUntrusted(source, config.MaxBytes)
	if err != nil {
		return nil, refuse(boot, source, err)
	}
	if text == nil {
		return writeExample(boot)
	}
	taken := file + ".taken"
	now, err := state.ReadUntrusted(file, config.MaxBytes)
	if err != nil {
		return nil, err
	}
	last, _ := state.ReadUntrusted(taken, config.MaxBytes) // an unreadable file is not the same
	if now != nil && last != nil && bytes.Equal(last, text) {
		return nil, writeBootFile(boot, bootErrors, nil)
	}
	cfg, err := config.Parse(bootConfig, text, o.Drivers)
	if err == nil {
		err = devices.CheckDevices(cfg)
	}
	if err != nil {
		return nil, refuse(boot, source, err)
	}
	if now != nil && !bytes.Equal(now, text) {
		if err := state.WriteAtomic(file+".old", now, 0o600); err != nil {
			return nil, fmt.Errorf("%s is not used: the old configuration cannot be saved: %w", source, err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, fmt.Errorf("%s is not used: %w", source, err)
	}
	if err := o.writeConfig(text); err != nil {
		return nil, fmt.Errorf("%s is not used: %w", source, err)
	}
	// After a loss of power here the file is copied again, which changes nothing.
	err = errors.Join(state.WriteAtomic(taken, text, 0o600), writeBootFile(boot, bootErrors, nil))
	return []string{"copy " + source + " to " + file}, err
}

// writeConfig replaces the configuration. The file may contain secrets, so that beside the
// superuser only the data folder's group, which is the site's, can read it.
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

// refuse writes beside the owner's file why it is not used.
func refuse(boot, source string, why error) error {
	says := fmt.Appendf(nil, "%s on this card has mistakes and is not used; the board keeps its configuration.\nCorrect it and restart the board.\n\n%v\n", bootConfig, why)
	return errors.Join(fmt.Errorf("%s is not used: %w", source, why), writeBootFile(boot, bootErrors, says))
}

// writeExample writes an example where the boot partition has no configuration, or a hint
// where a file's name is nearly right.
func writeExample(boot string) (did []string, err error) {
	for _, near := range []string{bootConfig + ".txt", "agentsite.yml"} {
		if _, err := os.Stat(filepath.Join(boot, near)); err == nil {
			return nil, writeBootFile(boot, bootErrors, fmt.Appendf(nil, "%s is not read, because of its name: rename it to %s.\nOn Windows, show file name extensions in Explorer (View, Show, File name extensions).\n", near, bootConfig))
		}
	}
	example := filepath.Join(boot, bootExample)
	_, err = os.Stat(example)
	if errors.Is(err, fs.ErrNotExist) { // an existing one may have been edited
		err = writeBootFile(boot, bootExample, exampleConfig)
		did = []string{"write " + example}
	}
	if err != nil {
		did = nil
	}
	return did, errors.Join(err, writeBootFile(boot, bootErrors, nil))
}

// bootFindings reports that the configuration on the boot partition is not used.
func bootFindings(root string) []driver.Finding {
	boot, err := bootFolder("", root)
	if err != nil || boot == "" {
		return nil
	}
	file := filepath.Join(boot, bootErrors)
	if _, err := os.Stat(file); err != nil {
		return nil
	}
	return []driver.Finding{{Severity: driver.Problem, Subject: bootConfig, Says: "the configuration on the boot partition is not used", Do: "read " + file + ", correct it and restart the board"}}
}

// addSensors creates the configuration if there is none, of first and no devices. It adds the sensors that it finds if
// the configuration has autoAddLine. It never adds an output: only its owner knows its safe value.
func addSensors(ctx context.Context, o PrepareOptions, first string) (did []string, err error) {
	text, err := state.ReadUntrusted(o.Config, config.MaxBytes)
	if err != nil {
		return nil, err
	}
	if text == nil {
		text = fmt.Appendf(nil,
			"%s\n# docs/configuration.md explains this file; agentsite check FILE checks it.\n%sdevices:\n", autoAddLine, first)
		if err := os.MkdirAll(filepath.Dir(o.Config), 0o755); err != nil {
			return nil, err
		}
		if err := o.writeConfig(text); err != nil {
			return nil, fmt.Errorf("the configuration cannot be written: %w", err)
		}
		did = append(did, "create "+o.Config)
	}
	if !bytes.Contains(text, []byte(autoAddLine)) {
		return did, nil
	}
	ctx, cancel := context.WithTimeout(ctx, scanTimeout)
	defer cancel()
	found, err := Scan(ctx, ScanOptions{
		Config: o.Config, Drivers: o.Drivers, Folder: o.Folder, Root: o.Root, Board: o.board,
		Wired: true, // what others announce is added by an owner only
	})
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

// WriteClaim writes the file on the boot partition that says how to claim the site, and removes it
// once the site has an owner. It returns the completed steps. It needs the superuser, and is run
// after each change of the data folder's state.ClaimFile.
func WriteClaim(o PrepareOptions) (did []string, err error) {
	if err := superuser(o); err != nil {
		return nil, err
	}
	boot, err := bootFolder(o.Boot, o.Root)
	if err != nil || boot == "" {
		return nil, err
	}
	return writeClaim(boot, o.Folder)
}

func writeClaim(boot string, f state.Folder) (did []string, err error) {
	file := filepath.Join(boot, state.ClaimFile)
	_, err = os.Stat(file)
	there := err == nil
	i, unclaimed, err := ReadInvitation(f)
	if err != nil {
		return nil, fmt.Errorf("%s cannot say how to claim the site: %w", file, err)
	}
	if !unclaimed {
		if there {
			did = []string{"remove " + file}
		}
		return did, writeBootFile(boot, state.ClaimFile, nil)
	}
	if now, _ := state.ReadUntrusted(file, 4096); bytes.Equal(now, i.Text()) {
		return nil, nil
	}
	return []string{"write " + file}, writeBootFile(boot, state.ClaimFile, i.Text())
}

// writeBootFile writes a file on the boot partition, or removes it when text is nil. It
// does not write a file again that already has the text.
func writeBootFile(boot, name string, text []byte) error {
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

// ReadInvitation returns the address for the claim of the folder's site. ok is false if there is
// none, because the site has an owner or has never run.
func ReadInvitation(f state.Folder) (i access.Invitation, ok bool, err error) {
	text, err := state.ReadUntrusted(f.Path(state.ClaimFile), 4096)
	if text == nil || err != nil {
		return i, false, err
	}
	i, err = access.FindInvitation(text)
	return i, err == nil, err
}

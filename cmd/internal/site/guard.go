package site

import (
	"context"
	"io"
	"os"
	"slices"

	"agentsite/agents/skill"
	"agentsite/cmd/internal/hosting"
	"agentsite/device/board"
	"agentsite/node/config"
	"agentsite/node/devices"
	"agentsite/node/state"
)

// guardFiles returns the files of a data folder that a site and its guard's process share.
func guardFiles(f state.Folder) devices.GuardFiles {
	return devices.GuardFiles{
		Folder: string(f), Plan: f.Path(state.PlanFile), PIDFile: f.RuntimePath("guard"), Latch: f.Latch(),
		Write: func(path string, text []byte) error {
			if err := state.WriteAtomic(path, text, 0o600); err != nil {
				return f.Unusable(err)
			}
			return nil
		},
		Read: f.ReadPlan,
		OpenLock: func() (*os.File, error) {
			lock, err := f.OpenLockFile("guard.lock")
			if err != nil {
				return nil, f.Unusable(err)
			}
			return lock, nil
		},
		TryLock: state.TryLock,
	}
}

// Guard is devices.Guard for a data folder, with all drivers.
func Guard(ctx context.Context, f state.Folder, conn io.ReadWriteCloser, signals <-chan os.Signal) error {
	return devices.Guard(ctx, guardFiles(f), AllDrivers(), conn, signals)
}

// Safe is devices.Safe for a data folder, with all drivers.
func Safe(ctx context.Context, f state.Folder) (outputs int, err error) {
	return devices.Safe(ctx, guardFiles(f), AllDrivers())
}

// CheckBoard is devices.CheckBoard for this machine, with all drivers.
func CheckBoard(path string) (cfg *config.Site, from string, err error) {
	b := board.New()
	return devices.CheckBoard(path, b, Drivers(b), hosting.Check)
}

// CheckText is CheckBoard of a text; errors name it name.
func CheckText(name string, text []byte) (*config.Site, error) {
	b := board.New()
	return devices.CheckBoardText(name, text, b, Drivers(b), hosting.Check)
}

// Doubts returns what may be a mistake in a configuration that check accepts, and the mistakes of the skills beside it.
func Doubts(cfg *config.Site, file string) []error {
	_, mistakes := skill.Open(skillsFolder(file))
	return slices.Concat(devices.Doubts(cfg), hosting.Doubts(cfg, file), mistakes)
}

// OwnSkills counts the skills of the owner beside a configuration that have no mistake.
func OwnSkills(file string) (n int) {
	all, _ := skill.Open(skillsFolder(file))
	for i := range all {
		if !slices.ContainsFunc(skill.BuiltIn(), func(s skill.Skill) bool { return s.Text == all[i].Text }) {
			n++
		}
	}
	return n
}

// CheckFile is devices.Check of a file for another machine, with all drivers.
func CheckFile(path string) (cfg *config.Site, from string, err error) {
	return devices.Check(path, AllDrivers(), hosting.Check)
}

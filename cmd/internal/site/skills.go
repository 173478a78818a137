package site

import (
	"log/slog"
	"path/filepath"
	"sync"

	"agentsite/agents"
	"agentsite/agents/skill"
)

// skills are the skills that the site offers: those of the program, and the owner's beside the configuration.
type skills struct {
	mu     sync.Mutex
	loaded []skill.Skill
}

func (s *skills) all() []skill.Skill {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loaded
}

// skillsFolder returns the folder of the owner's skills, beside a configuration.
func skillsFolder(file string) string { return filepath.Join(filepath.Dir(file), "skills") }

// readSkills reads the skills at a start and a reload. A skill with a mistake is left out; the rest of the site runs
// on.
func (s *site) readSkills() {
	now := skill.BuiltIn()
	if s.file != "" {
		var errs []error
		now, errs = skill.Open(skillsFolder(s.absFile))
		for _, err := range errs {
			slog.Error("a skill is not offered", "err", err)
		}
	}
	s.skills.mu.Lock()
	changed := !skill.Equal(s.skills.loaded, now)
	s.skills.loaded = now
	s.skills.mu.Unlock()
	if changed {
		s.hub.Announce(agents.Change{Resources: true})
	}
}

// Package skill reads skills: instructions for assistants, each in a file SKILL.md of a folder of its own, which begins
// with YAML frontmatter. It has those that come with the program.
//
// Format: https://agentskills.io/specification, and SEP-2640 for its form in the Model Context Protocol. Only the file
// itself is read: a site passes on no scripts and no other files.
package skill

// Package fleet does one thing at many sites at the same time: it selects contacts, calls each of them, and collects
// what they answer. A site that does not answer delays no other one.
package fleet

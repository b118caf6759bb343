// Package fault has the classes of errors. The package that finds an error knows its class;
// the command line chooses the exit code by it.
package fault

import (
	"errors"
	"fmt"
)

// Class is what an error is about.
type Class int

// The classes.
const (
	Failure      Class = iota // what was asked for could not be done
	Usage                     // what was asked for is wrong: a flag, an argument, or a name in one
	Undetermined              // the answer can't be computed from what was collected
)

// classified is an error that knows its class.
type classified interface {
	error
	Class() Class
}

// Of returns the class of the first error in the chain that has one, or else Failure.
func Of(err error) Class {
	if c, ok := errors.AsType[classified](err); ok {
		return c.Class()
	}
	return Failure
}

// Wrap returns an error with the same text and the class; nil for nil.
func Wrap(c Class, err error) error {
	if err == nil {
		return nil
	}
	return classError{err, c}
}

// Usagef returns an error of the class Usage. It works like fmt.Errorf.
func Usagef(format string, args ...any) error { return Wrap(Usage, fmt.Errorf(format, args...)) }

// classError is an error with a class.
type classError struct {
	error
	class Class
}

// Unwrap returns the error without the class.
func (e classError) Unwrap() error { return e.error }

// Class returns the class.
func (e classError) Class() Class { return e.class }

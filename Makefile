# The commands of the house; what each does stands in scripts/.
.PHONY: run test test-long format clean

run:        ## install what is missing, build, let a model write, leave a timeline (MODEL=DIR PROMPT=TEXT)
	@scripts/run.sh

test:       ## release build of everything, all tests, ThreadSanitizer on the protocol
	@scripts/test.sh

test-long:  ## long properties, everything under sanitizers, clang-tidy
	@scripts/test_long.sh

format:     ## let clang-format change the sources
	@scripts/check_format.sh --fix

clean:
	rm -rf build bin out

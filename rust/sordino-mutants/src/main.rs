//! Writes mutants into source files, all at once: which one is alive is said when a test runs, not when it is built.
//!
//! `sordino-mutants` reads lines from its input: a file, then names of functions, or none for all of them, separated by tabs.
//! It changes the files in place and prints a line for each mutant: number, file, line, function, what was there, what stands
//! there instead. Every mutant is an expression that asks `crate::mutants::is(number)`; tests are left alone. Numbers in the
//! first argument, separated by commas, are left out: of mutants that no compiler takes.

mod sites;

fn main() {
    let skipped: Vec<u32> =
        std::env::args().nth(1).unwrap_or_default().split(',').filter_map(|number| number.parse().ok()).collect();
    let mut next = 1;
    for line in std::io::stdin().lines() {
        let line = line.expect("a line");
        let mut fields = line.split('\t').map(str::to_string);
        let path = fields.next().unwrap_or_default();
        let functions: Vec<String> = fields.collect();
        let source = std::fs::read_to_string(&path).expect("a file that can be read");
        let (changed, sites) = sites::mutated(&source, &mut next, &skipped, &functions);
        for site in sites {
            println!("{}\t{path}\t{}\t{}\t{}\t{}", site.number, site.line, site.function, site.was, site.becomes);
        }
        std::fs::write(&path, changed).expect("a file that can be written");
    }
}

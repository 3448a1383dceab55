/**
 * Starts a module Worker that has the page's content security policy. A Worker from a file has the policy of that file's response instead, and a
 * static server sends none; a Worker from a blob inherits.
 */
export function spawn(script: string, name: string): Worker {
  const source = `import ${JSON.stringify(new URL(script, location.href).href)};`;
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const worker = new Worker(url, { type: "module", name });
  // The script is fetched after the constructor returns.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
  return worker;
}

/** What is told as an error reply with this code. */
export class Failure extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

export { didYouMean } from "../domain/nearest.js";
